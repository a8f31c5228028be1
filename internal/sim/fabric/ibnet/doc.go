// Package ibnet reads what ibnetdiscover prints of an InfiniBand fabric: switches, host channel
// adapters (HCAs), and the links between them. It knows the form of the file and what the names in
// it mean, and refuses what it does not understand; what the fabric is good for is for others.
package ibnet
