// Package certificates gives the webhook server its certificate: from files that something else
// keeps up to date (cert-manager), or issued and renewed by the manager itself and shared by its
// replicas in one Secret.
//
// It needs no list and no watch of Secrets: the one Secret and the two webhook configurations are
// read and written by name.
package certificates
