package cluster

// Rules judge machines by what the operator of a cluster wrote down for a kind of work, beyond
// what the work asks for itself.
//
// Whoever remembers what they said knows them by their value: it must be comparable, a pointer
// for example, and what the same Rules say of the same machine (the same pointer) must not
// change.
type Rules interface {
	// Judge judges a machine whose amounts the table names. It may be dear once; asked again
	// about the same machine it should cost no more than looking it up.
	Judge(m *Machine, resources *Resources) Judgement
	// Weight is what the scores count beside the weights of the terms of a node's score; 0
	// where the Rules have no scores. It is the same for all machines.
	Weight() float64
}

// Judgement is what Rules say of a machine.
type Judgement struct {
	// Refusal is why the work must not go there, as the end of "3 nodes are refused by …"; ""
	// lets it in.
	Refusal string
	// Score is how good the machine is for the work, 0 to 100; it counts only where the Rules
	// have a Weight.
	Score float64
}
