package extender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

const benchNodes = 1024

// benchWorld is 1,024 nodes with 8 GPUs, 16 a leaf, every third of them in use to some part.
func benchWorld(b *testing.B) (*world, []string) {
	b.Helper()
	w := newWorld(b)
	names := make([]string, benchNodes)
	for i := range names {
		names[i] = fmt.Sprintf("gpu-node-%04d", i)
		w.node(fmt.Sprintf("leaf-%03d", i/16), names[i], 8)
		if i%3 == 0 {
			w.pod(fmt.Sprintf("busy-%04d", i), int64(1+i%7), on(names[i]))
		}
	}
	return w, names
}

// BenchmarkVerbs asks over HTTPS on the loopback interface, as kube-scheduler does: a connection that
// stays, 1,024 names. Between two questions a pod comes or goes, so that no answer is the last one's.
func BenchmarkVerbs(b *testing.B) {
	gangMember := func(p *corev1.Pod) { gang("g", 64)(p); inOneSpine(p) }
	for name, c := range map[string]struct {
		verb  string
		edits []func(*corev1.Pod)
		gpus  int64
	}{
		"filter/pod":                        {verbFilter, nil, 1},
		"filter/gang of 64 whole nodes":     {verbFilter, []func(*corev1.Pod){gangMember}, 8},
		"prioritize/leastLoaded":            {verbPrioritize, nil, 1},
		"prioritize/topologyAware":          {verbPrioritize, []func(*corev1.Pod){says(gpuv1alpha1.StrategyAnnotation, "topologyAware")}, 1},
		"prioritize/fragmentationAware":     {verbPrioritize, []func(*corev1.Pod){says(gpuv1alpha1.StrategyAnnotation, "fragmentationAware")}, 1},
		"prioritize/random":                 {verbPrioritize, []func(*corev1.Pod){says(gpuv1alpha1.StrategyAnnotation, "random")}, 1},
		"prioritize/gang of 64 whole nodes": {verbPrioritize, []func(*corev1.Pod){gangMember}, 8},
	} {
		b.Run(name, func(b *testing.B) {
			w, names := benchWorld(b)
			a := newAuthority(b)
			a.issue(b, "server", "server")
			a.issue(b, "scheduler", "system:kube-scheduler")
			url := serve(b, w, Serving{CertFile: a.file("server.crt"), KeyFile: a.file("server.key"), ClientCAFile: a.file("ca.crt")})
			client := a.client(b, "scheduler")
			client.Transport.(*http.Transport).DisableKeepAlives = false
			body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: w.pod("p", c.gpus, append(c.edits, withBulk)...), NodeNames: &names})
			if err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				w.pod("x", int64(1+i%2), on(names[i*7919%benchNodes]), func(p *corev1.Pod) { p.Spec.Priority = nil })
				start := time.Now()
				r, err := client.Post(url+"/"+c.verb, "application/json", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != 200 {
					b.Fatal(r.Status, err)
				}
				r.Body.Close()
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

func inOneSpine(p *corev1.Pod) { p.Annotations[gpuv1alpha1.RequiredLevelAnnotation] = "spine" }

// withBulk makes the pod as large as those of people: some 10 KB.
func withBulk(p *corev1.Pod) {
	for i := range 100 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: fmt.Sprintf("the value of variable %d, as long as such are", i)})
	}
}
