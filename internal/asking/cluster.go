package asking

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
)

// Access says which cluster is asked, as kubectl's flags of the same names do.
type Access struct{ Kubeconfig, Context, Namespace string }

// Cluster is asked.
type Cluster struct {
	client rest.Interface
	// Namespace is that of the flags, or of the kubeconfig's context.
	Namespace string
}

// Connect finds the cluster as kubectl does. Nothing is contacted yet.
func Connect(a Access) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: a.Context, Context: contextOf(a.Namespace),
	})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config.APIPath = "/apis"
	config.GroupVersion = &schema.GroupVersion{Group: explainv1alpha1.GroupName, Version: explainv1alpha1.Version}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Cluster{client: client, Namespace: namespace}, nil
}

// Subject is what is asked about.
type Subject struct{ Resource, Name string }

// ParseSubject reads NAME, pod/NAME or gang/NAME.
func ParseSubject(text string) (Subject, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = "gpuworkload", text
	}
	if name == "" || strings.Contains(name, "/") {
		return Subject{}, fmt.Errorf("%q names nothing: give the name of a GPUWorkload, pod/NAME or gang/NAME", text)
	}
	switch strings.ToLower(kind) {
	case "gpuworkload", "gpuworkloads", "workload", "gw":
		return Subject{"gpuworkloads", name}, nil
	case "pod", "pods", "po":
		return Subject{"pods", name}, nil
	case "gang", "gangs", "podgroup", "podgroups":
		return Subject{"gangs", name}, nil
	}
	return Subject{}, fmt.Errorf("%q is of no kind that can be explained: give the name of a GPUWorkload, pod/NAME or gang/NAME", text)
}

// Explain asks about the subject. With try above zero the answer has the plan of that remedy.
func (c *Cluster) Explain(ctx context.Context, s Subject, try int) (*explainv1alpha1.Explanation, error) {
	r := c.client.Get().Namespace(c.Namespace).Resource(s.Resource).Name(s.Name).SubResource("explanation")
	if try > 0 {
		r = r.Param("try", strconv.Itoa(try))
	}
	var answer explainv1alpha1.Explanation
	return &answer, c.ask(ctx, s, r, &answer)
}

// Scenario returns the question about a GPUWorkload as a file for warp sim place.
func (c *Cluster) Scenario(ctx context.Context, s Subject) (string, error) {
	var answer explainv1alpha1.Scenario
	err := c.ask(ctx, s, c.client.Get().Namespace(c.Namespace).Resource(s.Resource).Name(s.Name).SubResource("scenario"), &answer)
	return answer.File, err
}

func (c *Cluster) ask(ctx context.Context, s Subject, r *rest.Request, answer any) error {
	result := r.Do(ctx)
	// Error, unlike Raw, reads what the server says.
	if err := result.Error(); err != nil {
		return c.say(s, err)
	}
	data, err := result.Raw()
	if err != nil {
		return c.say(s, err)
	}
	if err := read(data, answer); err != nil {
		return fmt.Errorf("reading the answer about %s: %w", s.Name, err)
	}
	return nil
}

// read reads the answer without what moves a terminal instead of being shown by it: there are names
// in it that others gave, and texts that they wrote.
func read(data []byte, answer any) error {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return err
	}
	shown, err := json.Marshal(printable(tree))
	if err != nil {
		return err
	}
	return json.Unmarshal(shown, answer)
}

// printable replaces control characters and those that change the direction of writing. Lines stay.
func printable(tree any) any {
	switch t := tree.(type) {
	case string:
		return strings.Map(func(r rune) rune {
			if r == '\n' || unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, t)
	case []any:
		for i := range t {
			t[i] = printable(t[i])
		}
	case map[string]any:
		for key := range t {
			t[key] = printable(t[key])
		}
	}
	return tree
}

// say tells apart what a person can do something about.
func (c *Cluster) say(s Subject, err error) error {
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err):
		// A server that knows of no such group says so in plain text.
		return fmt.Errorf("the cluster does not serve %s: is gpu-orchestrator installed there, with its APIService? (%w)", explainv1alpha1.APIVersion, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s %s in namespace %s", strings.TrimSuffix(s.Resource, "s"), s.Name, c.Namespace)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("nobody answers for %s now: kubectl get apiservice %s.%s says why (%w)",
			explainv1alpha1.APIVersion, explainv1alpha1.Version, explainv1alpha1.GroupName, err)
	}
	return fmt.Errorf("asking about %s: %w", s.Name, err)
}

func contextOf(namespace string) (c clientcmdapi.Context) {
	c.Namespace = namespace
	return c
}
