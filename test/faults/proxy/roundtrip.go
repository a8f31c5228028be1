package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// maxBody is above what etcd takes.
const maxBody = 8 << 20

// roundTrip is what the reverse proxy sends requests with.
func (p *Proxy) roundTrip(r *http.Request) (*http.Response, error) {
	info, err := requests.NewRequestInfo(r)
	if err != nil {
		return nil, fmt.Errorf("reading the request %s: %w", r.URL.Path, err)
	}
	switch {
	case info.IsResourceRequest && isWrite(info.Verb):
		return p.write(r, info)
	case info.IsResourceRequest && info.Verb == "watch":
		return p.openWatch(r)
	case info.IsResourceRequest && info.Verb == "list":
		return p.list(r, info)
	default:
		return p.base.RoundTrip(r)
	}
}

// write sends a write, or does to it what is armed.
func (p *Proxy) write(r *http.Request, info *request.RequestInfo) (*http.Response, error) {
	var data []byte
	if r.Body != nil {
		var err error
		if data, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
			return nil, fmt.Errorf("reading the body: %w", err)
		}
	}
	w := Write{
		Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Verb: info.Verb,
		Namespace: info.Namespace, Name: info.Name, Body: bodyOf(r, data),
	}
	point := Point{Component: p.Component, Verb: info.Verb, Resource: groupResource(info), Subresource: info.Subresource, Owner: ownerOf(r)}
	if p.Label != nil {
		point.Label = p.Label(w)
	}
	point, armed := p.Faults.meet(info.Namespace, point)
	record := Record{
		At: time.Now(), Component: p.Component, Instance: p.Instance, Point: point.String(), Class: point.Class(),
		Verb: info.Verb, Resource: groupResource(info), Sub: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	}
	if record.Name == "" {
		record.Name = w.Text("metadata", "name")
	}
	record.UIDGuard, record.VersionGuard = guards(w)
	send := func(ctx context.Context) (*http.Response, []byte, error) {
		out := r.Clone(ctx)
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		return p.send(out, &record)
	}
	defer func() { p.Faults.record(record) }()
	if armed == nil {
		response, _, err := send(r.Context())
		return told(&record, response), err
	}
	record.Fault = armed.action.Verb.String()
	response, err := p.act(r, armed, point, send)
	return told(&record, response), err
}

func told(record *Record, response *http.Response) *http.Response {
	if response != nil {
		record.Told = response.StatusCode
	}
	return response
}

// send sends the request and reads the answer whole.
func (p *Proxy) send(r *http.Request, record *Record) (*http.Response, []byte, error) {
	record.Sent = true
	response, err := p.base.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the answer: %w", err)
	}
	record.Code = response.StatusCode
	answer := Write{Body: bodyOf(&http.Request{Header: response.Header}, body)}
	record.UID, record.Version = answer.Text("metadata", "uid"), answer.Text("metadata", "resourceVersion")
	if record.Name == "" {
		record.Name = answer.Text("metadata", "name")
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, body, nil
}

// act does what is armed. A request that is carried out is carried out even if the client is
// gone meanwhile: that is the point of losing an answer.
func (p *Proxy) act(r *http.Request, armed *Armed, point Point, send func(context.Context) (*http.Response, []byte, error)) (*http.Response, error) {
	a, detached := armed.action, context.WithoutCancel(r.Context())
	lost := &lostError{connection: a.Connection}
	switch a.Verb {
	case Fail:
		return refusal(r, a), nil
	case ResetBefore:
		return nil, lost
	case CommitThenLose:
		if _, _, err := send(detached); err != nil {
			return nil, err
		}
		return nil, lost
	case CommitThenFail:
		if _, _, err := send(detached); err != nil {
			return nil, err
		}
		return refusal(r, a), nil
	case Hang:
		<-r.Context().Done()
		return nil, lost
	case Delay:
		select {
		case <-time.After(a.For):
		case <-r.Context().Done():
			return nil, lost
		}
		response, _, err := send(r.Context())
		return response, err
	case HoldBefore:
		armed.held <- Held{Instance: p.Instance, Point: point}
		if armed.await(r.Context()) == Drop {
			return nil, lost
		}
		response, _, err := send(detached)
		return response, err
	case HoldAfter:
		response, _, err := send(detached)
		if err != nil {
			return nil, err
		}
		armed.held <- Held{Instance: p.Instance, Point: point}
		if armed.await(r.Context()) == Drop {
			return nil, lost
		}
		return response, nil
	default:
		return nil, fmt.Errorf("there is no verb %d", a.Verb)
	}
}

// refusal is an answer as the API server words it.
func refusal(r *http.Request, a Action) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(a.Code),
		Message:  "failed on purpose",
	}
	header := http.Header{"Content-Type": {"application/json"}}
	switch a.Code {
	case http.StatusConflict:
		status.Reason = metav1.StatusReasonConflict
	case http.StatusTooManyRequests:
		status.Reason = metav1.StatusReasonTooManyRequests
	case http.StatusInternalServerError:
		status.Reason = metav1.StatusReasonInternalError
	case http.StatusServiceUnavailable:
		status.Reason = metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		status.Reason = metav1.StatusReasonTimeout
	case http.StatusGone:
		status.Reason = metav1.StatusReasonExpired
	}
	if seconds := int32(a.RetryAfter / time.Second); seconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(seconds)))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	// A Status of strings and numbers always encodes.
	body, _ := json.Marshal(status)
	return &http.Response{
		StatusCode: a.Code, Status: fmt.Sprintf("%d %s", a.Code, http.StatusText(a.Code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// asJSON has the API server answer in JSON, whose objects and frames can be read line by line.
func asJSON(r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "json") || strings.Contains(r.Header.Get("Accept"), "protobuf") {
		r.Header.Set("Accept", "application/json")
	}
}
