"""Constants only: no point of interest."""

CURRENCY = "EUR"
