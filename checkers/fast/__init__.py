"""Every interleaving in compiled loops: states packed in bits, tables filled as they are met."""
