"""The offline stand-in: a hidden world of rules, a model that learns them within limits, and a server."""
