package extender

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestOldKnowledgeIsNoAnswer(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	var away error
	p := &pulse{clock: clock, reach: func(context.Context) error { return away }}
	if err := p.check(); !errors.Is(err, errNotSynced) {
		t.Errorf("before the first answer: %v", err)
	}
	p.beat(t.Context())
	away = errors.New("no route")
	clock.Step(staleAfter)
	p.beat(t.Context())
	if err := p.check(); err != nil {
		t.Errorf("after %s: %v", staleAfter, err)
	}
	clock.Step(time.Second)
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "has not answered for 31s") {
		t.Errorf("a second later: %v", err)
	}
	away = nil
	p.beat(t.Context())
	if err := p.check(); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}
