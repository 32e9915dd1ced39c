"""The weakest protection that passes."""
