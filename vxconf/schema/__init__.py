"""The JSON Schemas of task file, workspace file and resolved config, and the files generated from them."""
