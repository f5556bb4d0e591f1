package main

import (
	"fmt"
	"os"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

type fluxChecks map[schema.GroupVersionKind]*cel.StatusEvaluator

// readFlux takes the expressions from the first Kustomization of a file; a field
// that Flux does not know is an error.
func readFlux(path string) (fluxChecks, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var kustomization kustomizev1.Kustomization
	if err := yaml.UnmarshalStrict(text, &kustomization); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	checks := fluxChecks{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, check.Kind, err)
		}
		checks[schema.FromAPIVersionAndKind(check.APIVersion, check.Kind)] = evaluator
	}
	return checks, nil
}
