package sim

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mostOfAnything bounds every amount: a petabyte of memory in bytes, or as many thousandths of
// a core, with room to add up thousands of them in 63 bits.
const mostOfAnything = 1 << 50

// Amounts is an amount of each resource by name: thousandths of a core for cpu, bytes for
// memory and storage, pieces for everything else.
type Amounts map[string]int64

// most is the bound for a resource, in its unit: whole cores read better.
func most(name string) int64 {
	if name == "cpu" {
		return mostOfAnything / 1000 * 1000
	}
	return mostOfAnything
}

// reckonable is what of a quantity is looked at before it is parsed: 5e999999999 is a legal
// quantity, and rounding it takes hours.
var reckonable = regexp.MustCompile(`^[+-]?[0-9.]{1,32}([eE][+-]?[0-9]{1,2}|[A-Za-z]{0,2})$`)

// read accepts Kubernetes quantities, as text or as numbers.
func (a *Amounts) read(d decoder, n *yaml.Node, p path) {
	if !d.is(n, yaml.MappingNode, p) {
		return
	}
	*a = Amounts{}
	d.pairs(n, p, func(name string, value *yaml.Node) {
		for value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if !d.is(value, yaml.ScalarNode, p.with(name)) {
			return
		}
		amount, err := parseAmount(name, value.Value)
		if err != nil {
			d.src.bad(p.with(name), fmt.Sprintf("is %s; %v", shown(value), err))
			return
		}
		(*a)[name] = amount
	})
}

// parseAmount reads a quantity in the unit of the resource. The error says what was expected.
func parseAmount(name, text string) (int64, error) {
	if !reckonable.MatchString(text) {
		return 0, fmt.Errorf("expected a Kubernetes quantity such as %s", example(name))
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("expected a Kubernetes quantity such as %s", example(name))
	}
	unit := 1.0
	if name == "cpu" {
		unit = 1000
	}
	switch size := q.AsApproximateFloat64() * unit; {
	case size < 0:
		return 0, fmt.Errorf("expected nothing below zero")
	case size > float64(most(name)):
		return 0, fmt.Errorf("expected up to %s", show(name, most(name)))
	}
	scale, smallest := resource.Scale(0), "a whole number"
	if name == "cpu" {
		scale, smallest = resource.Milli, "no less than thousandths of a core (1m)"
	}
	amount := q.ScaledValue(scale)
	if exact := resource.NewScaledQuantity(amount, scale); exact.Cmp(q) != 0 {
		return 0, fmt.Errorf("expected %s", smallest)
	}
	return amount, nil
}

// example is a quantity of the resource as people write it.
func example(name string) string {
	switch name {
	case "cpu":
		return `"500m" or "8"`
	case "memory", "ephemeral-storage":
		return `"64Gi"`
	}
	return `"8"`
}

// show writes an amount of the resource as people do.
func show(name string, amount int64) string {
	switch name {
	case "cpu":
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case "memory", "ephemeral-storage":
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return strconv.FormatInt(amount, 10)
}
