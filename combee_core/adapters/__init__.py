"""What touches the world: one module a vendor or medium, each behind a port."""
