package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// Point names a write. Two runs of the same flow have the same points.
type Point struct {
	Component   string
	Verb        string
	Resource    string
	Subresource string
	// Owner is the field manager, or how a patch is merged; "" if the request says neither.
	Owner string
	// Label is what the test's own function makes of the request, "" for nothing.
	Label string
	// Occurrence counts, from 1, the writes of this name in this namespace.
	Occurrence int
}

// Class is the point without its occurrence.
func (p Point) Class() string {
	var b strings.Builder
	b.WriteString(p.Component + " " + p.Verb)
	if p.Owner != "" {
		b.WriteString("(" + p.Owner + ")")
	}
	b.WriteString(" " + p.Resource)
	if p.Subresource != "" {
		b.WriteString("/" + p.Subresource)
	}
	if p.Label != "" {
		b.WriteString(" [" + p.Label + "]")
	}
	return b.String()
}

// String is the point's name, as plans and reports write it.
func (p Point) String() string { return fmt.Sprintf("%s #%d", p.Class(), p.Occurrence) }

// Write is a write request as a labelling function sees it.
type Write struct {
	Group, Resource, Subresource, Verb string
	Namespace, Name                    string
	// Body is the request's object, patch or delete options as JSON's types; nil if there is
	// none or it is in no known encoding.
	Body map[string]any
}

// Text returns the string at a path of the body, "" if there is none.
func (w Write) Text(path ...string) string {
	var at any = w.Body
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[key]
	}
	text, _ := at.(string)
	return text
}

// isWrite tells whether a request changes what the API server keeps.
func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

var requests = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// bodyOf decodes what was sent. Protobuf is known for Kubernetes' own kinds.
func bodyOf(r *http.Request, data []byte) map[string]any {
	if len(data) == 0 {
		return nil
	}
	if !strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		var m map[string]any
		if json.Unmarshal(data, &m) != nil {
			return nil
		}
		return m
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil
	}
	return m
}

// ownerOf says who claims the fields that a request writes, as far as the request says so.
func ownerOf(r *http.Request) string {
	if manager := r.URL.Query().Get("fieldManager"); manager != "" {
		return manager
	}
	if r.Method != http.MethodPatch {
		return ""
	}
	kind := r.Header.Get("Content-Type")
	kind, _, _ = strings.Cut(strings.TrimPrefix(kind, "application/"), ";")
	return strings.TrimSuffix(strings.TrimSuffix(kind, "+json"), "-patch")
}

// groupResource writes a resource the way people do: "pods", "jobs.batch".
func groupResource(info *request.RequestInfo) string {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String()
}
