"""Running tasks: their order, their report, their fix."""
