"""Diagnostics: one value for each mistake, their codes, and their forms for people and programs."""
