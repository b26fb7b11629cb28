"""The sections of pages: each takes a run and gives what its template shows."""
