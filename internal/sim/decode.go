package sim

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// maxValues bounds how many values one file may have once its aliases are followed: ten
// thousand nodes with eight wired GPUs have two million. Without it a page of aliases to
// aliases would fill the memory.
const maxValues = 8 << 20

// maxMerges bounds how deep merges may lie in each other; a mapping can even merge itself.
const maxMerges = 8

// decoder fills Go values from YAML and notes everything that does not fit, with its place.
// yaml.Unmarshal names the line but not the field, and says nothing of missing quotes.
type decoder struct {
	src  *source
	left *int
	// full is set once the budget is spent, so that this is said once.
	full *bool
	// depth counts merges within merges.
	depth int
}

// reader is a type that reads itself.
type reader interface {
	read(d decoder, n *yaml.Node, p path)
}

// value fills into from n. What does not fit is noted and left zero; null is absent.
func (d decoder) value(n *yaml.Node, into reflect.Value, p path) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if *d.left--; *d.left < 0 {
		if !*d.full {
			*d.full = true
			d.src.bad(p, fmt.Sprintf("the file has too many values once its aliases are followed; expected up to %d", maxValues))
		}
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if r, ok := into.Addr().Interface().(reader); ok {
		r.read(d, n, p)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		d.value(n, into.Elem(), p)
	case reflect.Struct:
		d.fields(n, into, p)
	case reflect.Map:
		d.entries(n, into, p)
	case reflect.Slice:
		d.items(n, into, p)
	default:
		d.scalar(n, into, p)
	}
}

func (d decoder) fields(n *yaml.Node, into reflect.Value, p path) {
	if !d.is(n, yaml.MappingNode, p) {
		return
	}
	names := fieldNames(into.Type())
	d.pairs(n, p, func(key string, value *yaml.Node) {
		if i := slices.Index(names, key); i >= 0 && key != "" {
			d.value(value, into.Field(i), p.with(key))
			return
		}
		d.src.bad(p.with(key), "there is no such field here; expected one of "+listed(names))
	})
}

// fieldNames returns the names in a file of a type's fields, "" for those that have none.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}

func listed(names []string) string {
	sorted := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s == "" })
	slices.Sort(sorted)
	return strings.Join(sorted, ", ")
}

func (d decoder) entries(n *yaml.Node, into reflect.Value, p path) {
	if !d.is(n, yaml.MappingNode, p) {
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	d.pairs(n, p, func(key string, value *yaml.Node) {
		entry := reflect.New(into.Type().Elem()).Elem()
		d.value(value, entry, p.with(key))
		into.SetMapIndex(reflect.ValueOf(key), entry)
	})
}

func (d decoder) items(n *yaml.Node, into reflect.Value, p path) {
	if !d.is(n, yaml.SequenceNode, p) {
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, into.Index(i), p.with(i))
	}
}

// pairs calls visit for each key of a mapping. A key that is there twice is a problem: one of
// the two is not what its writer thinks it is. Merges (<<) add what the mapping does not say
// itself.
func (d decoder) pairs(n *yaml.Node, p path, visit func(key string, value *yaml.Node)) {
	own := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, twice := own[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.src.bad(p, "a key is not a text; expected a field's name")
		case !d.printable(key.Value, nil):
			d.src.bad(p.with(key.Value), "is a name with control characters; expected one without")
		case key.Tag == "!!merge":
			merges = append(merges, value)
		case twice:
			d.src.bad(p.with(key.Value), fmt.Sprintf("is there twice, on lines %d and %d; expected once", first, key.Line))
		default:
			own[key.Value] = key.Line
			visit(key.Value, value)
		}
	}
	for _, m := range merges {
		d.merge(m, p, own, visit)
	}
}

func (d decoder) merge(m *yaml.Node, p path, own map[string]int, visit func(key string, value *yaml.Node)) {
	if d.depth++; d.depth > maxMerges {
		d.src.bad(p, fmt.Sprintf("<< merges what merges others, %d deep; expected less", d.depth))
		return
	}
	if *d.left--; *d.left < 0 {
		return
	}
	for m.Kind == yaml.AliasNode {
		m = m.Alias
	}
	switch m.Kind {
	case yaml.SequenceNode:
		for _, one := range m.Content {
			d.merge(one, p, own, visit)
		}
	case yaml.MappingNode:
		d.pairs(m, p, func(key string, value *yaml.Node) {
			if _, has := own[key]; !has {
				own[key] = value.Line
				visit(key, value)
			}
		})
	default:
		d.src.bad(p, "<< merges something that has no fields; expected an alias of a mapping")
	}
}

func (d decoder) scalar(n *yaml.Node, into reflect.Value, p path) {
	if !d.is(n, yaml.ScalarNode, p) {
		return
	}
	wrong := func(expected string) {
		d.src.bad(p, fmt.Sprintf("is %s; expected %s", shown(n), expected))
	}
	switch into.Kind() {
	case reflect.String:
		if n.Tag != "!!str" {
			wrong("a text: write it in quotes")
			return
		}
		if !d.printable(n.Value, p) {
			wrong("a text without control characters")
			return
		}
		into.SetString(n.Value)
	case reflect.Bool:
		var b bool
		if n.Tag != "!!bool" || n.Decode(&b) != nil {
			wrong("true or false")
			return
		}
		into.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var i int64
		if n.Tag != "!!int" || n.Decode(&i) != nil || into.OverflowInt(i) {
			wrong("a whole number")
			return
		}
		into.SetInt(i)
	case reflect.Float64:
		var f float64
		if n.Tag != "!!int" && n.Tag != "!!float" || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			wrong("a number")
			return
		}
		into.SetFloat(f)
	default:
		panic("sim: no way to read a " + into.Kind().String())
	}
}

// printable tells whether a text can be shown: one with control characters could make up lines
// of an answer.
func (d decoder) printable(text string, p path) bool {
	// Notes of a scenario, and of what it expects, that nobody is shown.
	notes := []any{"source", "skip", "reason", "policy", "gates"}
	if slices.ContainsFunc(p[:min(2, len(p))], func(step any) bool { return slices.Contains(notes, step) }) {
		return true
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// is notes a problem if n is not of the kind.
func (d decoder) is(n *yaml.Node, kind yaml.Kind, p path) bool {
	if n.Kind == kind {
		return true
	}
	expected := map[yaml.Kind]string{
		yaml.MappingNode: "fields with values", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value",
	}[kind]
	d.src.bad(p, fmt.Sprintf("is %s; expected %s", shown(n), expected))
	return false
}

// shown describes a value in a few words.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	const most = 40
	text := n.Value
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if n.Tag == "!!str" || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Sprintf("the text %q", text)
	}
	return text
}

// read accepts one slice or a list of them.
func (s *Slices) read(d decoder, n *yaml.Node, p path) {
	if n.Kind == yaml.SequenceNode {
		var list []Slice
		d.value(n, reflect.ValueOf(&list).Elem(), p)
		*s = list
		return
	}
	var one Slice
	d.value(n, reflect.ValueOf(&one).Elem(), p)
	*s = Slices{one}
}

// read accepts a list of indexes or a list of such lists.
func (g *GPUIndexes) read(d decoder, n *yaml.Node, p path) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || n.Content[0].Kind != yaml.SequenceNode {
		var flat []int
		d.value(n, reflect.ValueOf(&flat).Elem(), p)
		*g = flat
		return
	}
	var lists [][]int
	d.value(n, reflect.ValueOf(&lists).Elem(), p)
	for _, list := range lists {
		*g = append(*g, list...)
	}
}
