"""What a publisher does: contribution bounding, mechanisms, Release, utility loss."""
