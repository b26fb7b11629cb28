"""Files into cells of text with their row numbers, once, in batches; nothing here knows of brains."""
