"""What a fitted model takes in, says about itself, and is on disk."""
