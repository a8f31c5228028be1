package state

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mostOfAnything bounds every amount that is read: a petabyte of memory in bytes, or as many
// thousandths of a core, with room to add up thousands of pods in 63 bits.
const mostOfAnything = 1 << 50

// CheckAmounts tells whether every amount that a pod asks for can be reckoned with: not below
// zero, and no larger than any machine. It must come before anything adds amounts up: a
// quantity of 5e9999999999 is legal, and adding another to it takes hours.
func CheckAmounts(spec *corev1.PodSpec) error {
	for _, c := range spec.Containers {
		if err := checkContainer("containers", &c); err != nil {
			return err
		}
	}
	for _, c := range spec.InitContainers {
		if err := checkContainer("initContainers", &c); err != nil {
			return err
		}
	}
	if r := spec.Resources; r != nil {
		if err := checkLists("resources", r.Requests, r.Limits); err != nil {
			return err
		}
	}
	return checkLists("overhead", spec.Overhead)
}

func checkContainer(field string, c *corev1.Container) error {
	return checkLists(fmt.Sprintf("%s[%s].resources", field, c.Name), c.Resources.Requests, c.Resources.Limits)
}

func checkLists(field string, lists ...corev1.ResourceList) error {
	for _, list := range lists {
		for name, q := range list {
			if !reasonable(&q) {
				return fmt.Errorf("%s asks for an amount of %s that no machine has, or for less than nothing: write how much one pod needs", field, name)
			}
		}
	}
	return nil
}

// reasonable looks at the size of a quantity without reckoning with it.
func reasonable(q *resource.Quantity) bool {
	f := q.AsApproximateFloat64()
	return f >= 0 && f <= mostOfAnything
}

// sane tells whether the amounts of a pod of anybody can be reckoned with. What a node reports
// of its containers counts, too.
func sane(pod *corev1.Pod) bool {
	if CheckAmounts(&pod.Spec) != nil {
		return false
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			if c.Resources != nil && checkLists("", c.Resources.Requests, c.Resources.Limits) != nil {
				return false
			}
			if checkLists("", c.AllocatedResources) != nil {
				return false
			}
		}
	}
	return true
}
