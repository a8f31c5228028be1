// Package gpu knows what is inside a node: its GPUs, how they are wired, and how one of them
// can be cut into MIG instances.
//
// A Board answers which GPUs belong together, as NVIDIA's own allocator would; a Geometry
// answers where MIG instances can go. Both are built once for a kind of node, never change,
// and may be read by many at a time.
//
// The package decides over plain data. It reads no device, and it does not guess: what a node
// did not tell is unknown, and unknown is never the best.
package gpu
