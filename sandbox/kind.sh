# The sandbox as a kind cluster (`. sandbox/kind.sh`, after lib.sh). No machine
# of this project's own has Docker, so this part has never run; sandbox/kind-check
# holds its configuration against kind's types.

# kind_config: kind-config.yaml for this state and this number of nodes, with
# absolute paths. Without nodes the control plane keeps its taint, so that pods
# stay Pending.
kind_config() {
  local text worker workers="" node
  text=$(sed "s#hostPath: sandbox/#hostPath: $checkout/sandbox/#; s#hostPath: build/sandbox/#hostPath: $state/#" \
    "$checkout/kind-config.yaml")
  worker=$(grep -m 1 -A 1 -e '- role: worker' <<<"$text")
  text=${text%%$'\n'  - role: worker*}
  for ((node = 1; node < nodes; node++)); do workers+=$'\n'$worker; done
  ((nodes > 0)) || text=$(sed '/kubeadmConfigPatches:$/,/taints:/d' <<<"$text")
  printf '%s\n' "$text$workers"
}

kind_up() {
  local program
  for program in kubectl helm; do
    command -v "$program" >/dev/null || refuse "'$program' is missing; a kind cluster is used with the one you install"
  done
  if uses_kind && KUBECONFIG=$state/kubeconfig kubectl get nodes >/dev/null 2>&1; then
    say "it is already up"
    return
  fi
  "$checkout/sandbox/down" --locked
  mkdir -p "$state/audit" "$state/bin"
  rm -f "$state/audit/audit.log"
  ln -sf "$(command -v kubectl)" "$state/bin/kubectl"
  ln -sf "$(command -v helm)" "$state/bin/helm"
  ln -sf audit/audit.log "$state/audit.log"
  touch "$state/kind"
  kind_config >"$state/kind-config.yaml"
  kind create cluster --name "$id" --config "$state/kind-config.yaml" --kubeconfig "$state/kubeconfig" --wait 180s
  # Names that change at once, as in sandbox/Corefile.
  KUBECONFIG=$state/kubeconfig kubectl --namespace kube-system get configmap coredns --output yaml |
    sed -e 's/ttl 30/ttl 1/' -e 's/cache 30/cache 2/' |
    KUBECONFIG=$state/kubeconfig kubectl replace --filename -
}

kind_down() { kind delete cluster --name "$id" --kubeconfig "$state/kubeconfig"; }
