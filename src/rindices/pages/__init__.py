"""What people look at: the report of a run, one offline file, and the same sections served in the browser."""
