"""The parts of a run that both platforms share."""
