"""From a user's fold to a kernel: source, expressions, statements, and when it is worth it."""
