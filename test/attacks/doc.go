// Package attacks tries what a tenant, a kubelet or one of our own accounts must not be able to do,
// on a real API server with the product's manifests applied and its manager running as the account
// that they define. Each attack is refused for the reason it should be, and its allowed twin, the
// same request less what makes it an attack, is still allowed.
package attacks
