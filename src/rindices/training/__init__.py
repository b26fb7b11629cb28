"""Training of models in chunks, the executors that run it, and the journal from which it resumes after a crash."""
