"""How a model is fitted. A learner is three functions on a lane batch: init, advance, report."""
