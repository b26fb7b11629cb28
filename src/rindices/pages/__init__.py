"""Reports and pages: the report of a run as one offline file, and the same sections served in the browser."""
