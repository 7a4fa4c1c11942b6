"""TinTiN's evaluation (section 7): a validation of smart meters whose readings come up to 40 days late."""
