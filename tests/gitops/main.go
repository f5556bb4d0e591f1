// Command gitops says what GitOps tools read in a resource: kstatus, Flux's fork
// of it, Flux's health check expressions, and Argo CD's health and actions.
//
//	gitops ARGOCD_CM FLUX_KUSTOMIZATION < resources.json > verdicts.json
//
// Both files are those that users apply (deploy/). The input is a list of
// resources, the output the list of their verdicts, in the same order.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	fluxstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Kstatus reading           `json:"kstatus"`
	Fork    reading           `json:"fluxKstatus"`
	Flux    string            `json:"flux"`
	Argo    reading           `json:"argo"`
	Actions map[string]action `json:"actions"`
}

type reading struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: gitops ARGOCD_CM FLUX_KUSTOMIZATION < resources.json"))
	}
	argo, err := readArgo(os.Args[1])
	if err != nil {
		fail(err)
	}
	flux, err := readFlux(os.Args[2])
	if err != nil {
		fail(err)
	}
	var found []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&found); err != nil {
		fail(err)
	}
	verdicts := make([]verdict, 0, len(found))
	for index, raw := range found {
		each, err := judge(raw, argo, flux)
		if err != nil {
			fail(fmt.Errorf("resource %d: %w", index, err))
		}
		verdicts = append(verdicts, each)
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		fail(err)
	}
}

// judge decodes as these tools do: whole numbers are integers.
func judge(raw []byte, argo argoCD, flux fluxChecks) (verdict, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return verdict{}, err
	}
	computed, err := status.Compute(object)
	if err != nil {
		return verdict{}, err
	}
	forked, err := fluxstatus.Compute(object)
	if err != nil {
		return verdict{}, err
	}
	evaluator, ok := flux[object.GroupVersionKind()]
	if !ok {
		return verdict{}, fmt.Errorf("no health check for %s", object.GroupVersionKind())
	}
	checked, err := evaluator.Evaluate(context.Background(), object)
	if err != nil {
		return verdict{}, err
	}
	health, err := argo.health(object)
	if err != nil {
		return verdict{}, err
	}
	actions, err := argo.actions(object)
	if err != nil {
		return verdict{}, err
	}
	return verdict{
		Kstatus: reading{string(computed.Status), computed.Message},
		Fork:    reading{string(forked.Status), forked.Message},
		Flux:    string(checked.Status),
		Argo:    health,
		Actions: actions,
	}, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gitops:", err)
	os.Exit(2)
}
