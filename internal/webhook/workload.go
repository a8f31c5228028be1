package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/core/cluster"
	"github.com/reyisjones/gpu-orchestrator/core/placement"
	"github.com/reyisjones/gpu-orchestrator/internal/controller"
	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// workloads checks GPUWorkloads as they are written.
type workloads struct {
	decoder admission.Decoder
	// className and the three after it are the installation's: a workload of another class is
	// somebody else's to check.
	className    string
	defaultImage string
	levels       []cluster.Level
	strategies   *placement.Registry
	limiter      *limiter
	// priorities reads PriorityClasses from a cache.
	priorities client.Reader
}

// Handle implements admission.Handler.
func (h *workloads) Handle(ctx context.Context, r admission.Request) admission.Response {
	if r.UID == "" {
		return noRequest()
	}
	create := r.Operation == admissionv1.Create
	if !create && r.Operation != admissionv1.Update || r.SubResource != "" || r.Resource.Resource != "gpuworkloads" {
		return admission.Allowed("")
	}
	// Counted before anything is read, so that what is over the limit costs nothing. What is only
	// tried is not counted: a dry run leaves no trace.
	if create && !ptr.Deref(r.DryRun, false) {
		if wait, ok := h.limiter.take(r.Namespace); !ok {
			return h.limiter.tooMany(r.Namespace, wait)
		}
	}
	if err := errors.Join(checkAmounts(r.Object.Raw), checkAmounts(r.OldObject.Raw)); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the GPUWorkload: %w", err))
	}
	var w, old gpuv1alpha1.GPUWorkload
	if err := h.decoder.Decode(r, &w); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the GPUWorkload: %w", err))
	}
	if w.Spec.ClassName != h.className {
		return admission.Allowed("")
	}
	var before []problem
	if !create {
		if err := h.decoder.DecodeRaw(r.OldObject, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the GPUWorkload as it was: %w", err))
		}
		// Finalizers and labels of a workload that is wrong can be changed, or it could not go.
		if w.DeletionTimestamp != nil || equality.Semantic.DeepEqual(w.Spec, old.Spec) {
			return admission.Allowed("")
		}
		before = h.problems(&old)
	}
	now := h.problems(&w)
	added := slices.DeleteFunc(slices.Clone(now), func(p problem) bool { return slices.Contains(before, p) })
	if len(added) > 0 {
		return invalid(&w, added)
	}
	response := admission.Allowed("")
	// What was wrong before may stay wrong: a workload must be able to be suspended.
	for _, p := range now {
		response = response.WithWarnings(brief(p.String()))
	}
	for _, text := range append(h.pointless(&w), h.missingPriority(ctx, &w)...) {
		response = response.WithWarnings(brief(text))
	}
	return response
}

// noRequest is the answer to what is no admission request, though it may be JSON.
func noRequest() admission.Response {
	return admission.Errored(http.StatusBadRequest, errors.New("this is no admission request, or it has an empty UID"))
}

// problem is what is wrong with a field, and what to do.
type problem struct{ field, text string }

func (p problem) String() string { return p.field + ": " + p.text }

// problems says what the controller would refuse the workload for: it asks the code that the
// controller asks, about a cluster without nodes.
func (h *workloads) problems(w *gpuv1alpha1.GPUWorkload) []problem {
	all := reservedKeys(w)
	pod, err := controller.PodOf(w, h.defaultImage)
	if err == nil {
		_, _, err = state.New(h.levels, h.strategies).Plan(w, pod, state.Ask{})
	}
	var wrong *state.InvalidError
	switch {
	case errors.As(err, &wrong):
		all = append(all, problem{wrong.Field, wrong.Problem})
	case err != nil:
		all = append(all, problem{"spec", err.Error()})
	}
	return all
}

// reservedKeys finds labels and annotations of the template that are not for users to write.
func reservedKeys(w *gpuv1alpha1.GPUWorkload) []problem {
	if w.Spec.Template == nil {
		return nil
	}
	var all []problem
	for _, m := range []struct {
		field string
		of    map[string]string
	}{{"labels", w.Spec.Template.Labels}, {"annotations", w.Spec.Template.Annotations}} {
		for key := range m.of {
			if gpuv1alpha1.Reserved(key) && key != gpuv1alpha1.UnreadableAnnotation {
				all = append(all, problem{"spec.template.metadata." + m.field, fmt.Sprintf("%q is for gpu-orchestrator alone to write: take it out", key)})
			}
		}
	}
	slices.SortFunc(all, func(a, b problem) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// invalid is the answer to a workload that cannot be carried out as it is written.
func invalid(w *gpuv1alpha1.GPUWorkload, problems []problem) admission.Response {
	kind := gpuv1alpha1.GroupVersion.WithKind("GPUWorkload")
	status := metav1.Status{
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Details: &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind, Name: w.Name},
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: p.field, Message: p.text,
		})
	}
	status.Message = strings.Join(texts, "; ")
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// lookupWithin bounds the look into the cache, which may still be filling.
const lookupWithin = 50 * time.Millisecond

// missingPriority warns of a PriorityClass that is not there. It is no error: it may come later,
// and the API server will say so when the pods are made.
func (h *workloads) missingPriority(ctx context.Context, w *gpuv1alpha1.GPUWorkload) []string {
	name := w.Spec.PriorityClassName
	if t := w.Spec.Template; name == "" && t != nil {
		name = t.Spec.PriorityClassName
	}
	if name == "" || h.priorities == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	if err := h.priorities.Get(ctx, client.ObjectKey{Name: name}, &schedulingv1.PriorityClass{}); apierrors.IsNotFound(err) {
		return []string{fmt.Sprintf("spec.priorityClassName: there is no PriorityClass %q: no pod can be made until there is; kubectl get priorityclasses lists them", name)}
	}
	return nil
}

// longestWarning is what the API server passes on without cutting it.
const longestWarning = 256

func brief(text string) string {
	text = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), "")
	if len(text) <= longestWarning {
		return text
	}
	return strings.ToValidUTF8(text[:longestWarning-3], "") + "..."
}
