package decide_test

import (
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narya"
	"github.com/mahati-host/mahati/narya/naryatest"
	"pgregory.net/rapid"
)

// Whatever is commanded in whatever state, the events of the facts keep the promises of
// their types, and every one of them may be served.
func TestEventsOfAnyCommands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &player{bed: newBed(rt), draw: rt}
		took := int64(0)
		p.env.Elapsed = func(string) (int64, bool) { took++; return took, true }
		payload := created("default")
		payload.Mappings = facts.Mappings{Narya: int(narya.Mapping1)}
		p.do(decide.Create{Payload: payload})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.env.MayStart = rapid.IntRange(0, 3).Draw(rt, "place") > 0
			p.env.CanSteer = rapid.Bool().Draw(rt, "steers")
			p.env.Now = p.env.Now.Add(msec(rapid.Int64Range(-500, 2000).Draw(rt, "time")))
			p.do(p.command())
		}
		p.bringToRest(rapid.SampledFrom([]string{"end", "stop", "restart"}).Draw(rt, "rest"))
		judge, number := naryatest.NewJudge(), int64(0)
		for _, f := range p.list {
			for _, e := range narya.Mapping1.Project(f) {
				number++
				e.ID = number
				if _, err := narya.Encode(e); err != nil {
					rt.Fatalf("encode an event of %s: %v", f.Type(), err)
				}
				if err := judge.See(e); err != nil {
					rt.Fatal(err)
				}
				if end, ok := e.Payload.(*narya.TurnFinished); ok && end.ElapsedMs == nil {
					rt.Fatalf("turn %s does not tell how long it took", end.TurnID)
				}
				if end, ok := e.Payload.(*narya.ToolCallFinished); ok && end.Tool == "" {
					rt.Fatalf("call %s does not tell its tool", end.ToolCallID)
				}
			}
		}
		if err := judge.Rest(); err != nil {
			rt.Fatal(err)
		}
	})
}
