"""The experiments of the Impatience paper's sections VI-B and VI-C: sorting algorithms, offline and online."""
