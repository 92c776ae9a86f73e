// Row by row.
__global__ void copy_rows() {}
