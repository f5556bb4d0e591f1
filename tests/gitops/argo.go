package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"
)

// Argo CD's own packages are 1,200 to compile, so its way of running a script is
// done again here: util/lua/lua.go of Argo CD 3.5.7, with the same interpreter
// and JSON. A script of a user's has the libraries base, table and package, and
// one second. Not here: its os library, which has the time and the date alone.

// argoCD is what argocd-cm says of each kind, by its group and kind.
type argoCD map[string]customization

type customization struct {
	health  string
	actions struct {
		Discovery   string `json:"discovery.lua"`
		Definitions []struct {
			Name   string `json:"name"`
			Action string `json:"action.lua"`
		} `json:"definitions"`
	}
}

// action is one that is offered. Spec and Annotations are what the resource's
// would be after it; refusal is what it says where it is not offered.
type action struct {
	Disabled    bool              `json:"disabled"`
	DisplayName string            `json:"displayName"`
	Spec        map[string]any    `json:"spec,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Refusal     string            `json:"refusal,omitempty"`
}

func readArgo(path string) (argoCD, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var configuration struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	found := argoCD{}
	for _, kind := range []string{"KafkaMigration", "ConsumerGroupMigration"} {
		var own customization
		key := "switchover.dev_" + kind
		own.health = configuration.Data["resource.customizations.health."+key]
		actions := configuration.Data["resource.customizations.actions."+key]
		if own.health == "" || actions == "" {
			return nil, fmt.Errorf("%s: no health or no actions of %s", path, kind)
		}
		if err := yaml.UnmarshalStrict([]byte(actions), &own.actions); err != nil {
			return nil, fmt.Errorf("%s: actions of %s: %w", path, kind, err)
		}
		found[kind] = own
	}
	return found, nil
}

var healths = map[string]bool{
	"Healthy": true, "Progressing": true, "Suspended": true, "Degraded": true, "Missing": true, "Unknown": true,
}

func (a argoCD) health(object *unstructured.Unstructured) (reading, error) {
	var told reading
	if err := run(a[object.GetKind()].health, object, &told); err != nil {
		return told, fmt.Errorf("health.lua: %w", err)
	}
	if !healths[told.Status] {
		return told, fmt.Errorf("health.lua: %q is no health", told.Status)
	}
	return told, nil
}

func (a argoCD) actions(object *unstructured.Unstructured) (map[string]action, error) {
	own := a[object.GetKind()].actions
	found := map[string]action{}
	if err := run(own.Discovery, object, &found); err != nil {
		return nil, fmt.Errorf("discovery.lua: %w", err)
	}
	defined := map[string]string{}
	for _, each := range own.Definitions {
		defined[each.Name] = each.Action
	}
	for name, each := range found {
		script, ok := defined[name]
		if !ok {
			return nil, fmt.Errorf("discovery.lua offers %s, which is not defined", name)
		}
		var after struct {
			Metadata struct {
				Annotations any `json:"annotations"` // an empty one is written as a list, too
			} `json:"metadata"`
			Spec map[string]any `json:"spec"`
		}
		// Argo CD runs an action that it is asked for, whatever discovery says.
		err := run(script, object, &after)
		if each.Disabled {
			if err != nil {
				each.Refusal = err.Error()
				found[name] = each
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", name, err)
		}
		before, _, err := unstructured.NestedMap(object.Object, "spec")
		if err != nil {
			return nil, err
		}
		each.Spec, _ = cleaned(after.Spec, before).(map[string]any)
		if annotations, ok := after.Metadata.Annotations.(map[string]any); ok {
			each.Annotations = map[string]string{}
			for key, value := range annotations {
				each.Annotations[key] = fmt.Sprint(value)
			}
		}
		found[name] = each
	}
	if len(found) != len(defined) {
		return nil, fmt.Errorf("discovery.lua offers %d of %d actions", len(found), len(defined))
	}
	return found, nil
}

// cleaned gives back what was an empty object: Lua has one empty table, and it is
// written as a list. Argo CD does the same (cleanReturnedObj).
func cleaned(after, before any) any {
	switch was := before.(type) {
	case map[string]any:
		if list, ok := after.([]any); ok && len(list) == 0 {
			return map[string]any{}
		}
		if now, ok := after.(map[string]any); ok {
			for key := range now {
				now[key] = cleaned(now[key], was[key])
			}
		}
	case []any:
		if now, ok := after.([]any); ok {
			for index := range min(len(now), len(was)) {
				now[index] = cleaned(now[index], was[index])
			}
		}
	}
	return after
}

// run decodes the table that a script returns for an object.
func run(script string, object *unstructured.Unstructured, into any) error {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return err
		}
	}
	within, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(within)
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	value, err := luajson.Decode(state, text)
	if err != nil {
		return err
	}
	state.SetGlobal("obj", value)
	if err := state.DoString(script); err != nil {
		return err
	}
	returned := state.Get(-1)
	if returned.Type() != lua.LTTable {
		return errors.New("expect table output from Lua script, not " + returned.Type().String())
	}
	encoded, err := luajson.Encode(returned)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}
