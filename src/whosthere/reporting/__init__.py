"""What audits found, as pages to read: findings, then sections, then one HTML file."""
