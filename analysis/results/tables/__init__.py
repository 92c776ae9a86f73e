"""The tables made of the samples: summary, ratios, claims, predictions of the link model."""
