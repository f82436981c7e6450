"""The source graph and the passes that make it pure."""
