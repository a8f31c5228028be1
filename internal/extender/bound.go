package extender

import (
	"bytes"
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// mostNames is how many nodes a request may name: ten times what Kubernetes supports in a cluster.
// In four bytes of a body stands a name that takes sixteen and more of memory, and as much again for
// what is said of it.
const mostNames = 50000

// tooManyError says that a request names more than is read.
type tooManyError struct{}

func (*tooManyError) Error() string {
	return fmt.Sprintf("it lists more than %d nodes or pods, which no cluster has", mostNames)
}

// list and table are read only after they were counted, and not at all if they are too long.
type (
	list[T any]  []T
	table[T any] map[string]T
)

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if err := bounded(data); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, (*[]T)(l))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *table[T]) UnmarshalJSON(data []byte) error {
	if err := bounded(data); err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, (*map[string]T)(t))
}

// bounded counts the elements of a JSON array, or the fields of an object, and keeps none of them.
func bounded(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil || start != json.Delim('[') && start != json.Delim('{') {
		return err // Whatever it is, it is short, and what reads it says what is wrong.
	}
	var one json.RawMessage
	for n := 0; decoder.More(); n++ {
		if n == mostNames {
			return &tooManyError{}
		}
		if start == json.Delim('{') {
			if _, err := decoder.Token(); err != nil {
				return err
			}
		}
		if err := decoder.Decode(&one); err != nil {
			return err
		}
	}
	return nil
}

// victims are those of a node, in either of the two forms in which kube-scheduler names them.
type victims[T any] struct {
	Pods             list[T]
	NumPDBViolations int64
}
