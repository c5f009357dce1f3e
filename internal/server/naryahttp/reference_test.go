package naryahttp_test

import (
	"testing"

	"github.com/mahati-host/mahati/internal/referencetest"
)

// The published document takes every event of streams of real operations. Each test of a
// stream asks it where it is there; here it must be.
func TestReferenceStreams(t *testing.T) {
	referencetest.Dir(t)
	for name, test := range map[string]func(*testing.T){
		"sessions": TestPromiseStatusOnlyOnAChange, "posture": TestPromisePostureOnlyIfItMoved, "moves": TestPromiseMovedOnlyIfThePathChanged,
		"models": TestPromiseModelOnlyOnAChange, "turns": TestPromiseOneEndForEachTurn, "restart": TestPromiseTheRestartEndsATurn,
		"figures": TestPromiseFiguresAreKnownOnes, "messages": TestPromiseMessagesAndRounds, "waiting": TestPromiseOfWaitingMessages,
		"calls": TestPromiseOfCalls, "permissions": TestPromiseOfPermissions, "questions": TestPromiseOfQuestions,
		"lanes": TestPromiseOfLanes, "tasks": TestPromiseOfTasks, "workflows": TestPromiseOfWorkflows,
		"extensions": TestPromiseOfExtensions, "intercom": TestPromiseOfIntercom,
	} {
		t.Run(name, test)
	}
}
