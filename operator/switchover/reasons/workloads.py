"""Workloads, their pods and who else writes them. Texts: docs/runbooks/workloads.md."""

from switchover.reasons.reason import Reason, Urgency

SUBJECT = "workloads"

AUTOSCALER_ACTIVE = Reason(SUBJECT, "AutoscalerActive", Urgency.STANDS, prose=True)
AUTOSCALER_IN_THE_WAY = Reason(SUBJECT, "AutoscalerInTheWay", Urgency.STANDS)
CONTAINER_MISSING = Reason(SUBJECT, "ContainerMissing", Urgency.STANDS)
DEPLOYMENT_NOT_HELD = Reason(SUBJECT, "DeploymentNotHeld", Urgency.NOW, prose=True)
IMAGE_NOT_ALLOWED = Reason(SUBJECT, "ImageNotAllowed", Urgency.STANDS)
POD_CHANGE_NOT_ALLOWED = Reason(SUBJECT, "PodChangeNotAllowed", Urgency.STANDS)
NODE_CORDONED = Reason(SUBJECT, "NodeCordoned", Urgency.STANDS)
NOT_IN_GIT = Reason(SUBJECT, "NotInGit", Urgency.STANDS, prose=True)
NOT_RELEASED = Reason(SUBJECT, "NotReleased", Urgency.LOOK)
OLD_IMAGE = Reason(SUBJECT, "OldImage", Urgency.STANDS)
ORIGINAL_MISSING = Reason(SUBJECT, "OriginalMissing", Urgency.NOW, prose=True)
OWN_CONFIGURATION_DIFFERS = Reason(SUBJECT, "OwnConfigurationDiffers", Urgency.STANDS)
OWN_TEMPLATE = Reason(SUBJECT, "OwnTemplate", Urgency.STANDS, prose=True)
POD_COMING_UP = Reason(SUBJECT, "PodComingUp", Urgency.LOOK)
POD_IN_TROUBLE = Reason(SUBJECT, "PodInTrouble", Urgency.LOOK, prose=True)
PROTOCOL_REFUSED = Reason(SUBJECT, "ProtocolRefused", Urgency.STANDS)
REPLICAS_CHANGED = Reason(SUBJECT, "ReplicasChanged", Urgency.STANDS, prose=True)
REVERTED_BY_GITOPS = Reason(SUBJECT, "RevertedByGitOps", Urgency.NOW, prose=True)
STATEFUL_SET_MISSING = Reason(SUBJECT, "StatefulSetMissing", Urgency.STANDS)
TEMPLATE_NOT_BROUGHT = Reason(SUBJECT, "TemplateNotBrought", Urgency.STANDS)
STRATEGY_RESET = Reason(SUBJECT, "StrategyReset", Urgency.NOW)
TEMPLATE_NOT_HELD = Reason(SUBJECT, "TemplateNotHeld", Urgency.NOW)
TOO_MANY_PODS = Reason(SUBJECT, "TooManyPods", Urgency.STANDS)
TRIAL_FAILED = Reason(SUBJECT, "TrialFailed", Urgency.STANDS)
TRIAL_RUNNING = Reason(SUBJECT, "TrialRunning", Urgency.NONE)
WORKLOAD_MISSING = Reason(SUBJECT, "WorkloadMissing", Urgency.STANDS)
WOULD_RESTART = Reason(SUBJECT, "WouldRestart", Urgency.NOW)
