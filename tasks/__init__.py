"""Prefect tasks: each is a stage of `combee_core` with the policies of `tasks.policies`."""
