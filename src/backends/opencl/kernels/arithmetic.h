// exp, the activations and sums in 16 lanes, operation for operation as backends/cpu/math-inl.h and
// row_kernels.cpp do them, so that both give the same bits.
