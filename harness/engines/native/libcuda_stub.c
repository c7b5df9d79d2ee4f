/* SGLang's kernel library links libcuda.so.1 for this one symbol, which its CPU path never calls.
   Without a driver the dynamic linker needs some library of that name. */
int cuPointerGetAttribute(void) { return 100; /* CUDA_ERROR_NO_DEVICE */ }
