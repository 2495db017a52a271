// Package k8s checks the manifests of deploy/k8s against Kubernetes' own types and builds them as
// kustomize would. It is a module of its own, because its dependencies are large. No program of
// this project needs them (docs/explanation/adr/0046).
package k8s

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// typed makes an empty object of a kind.
func typed(apiVersion, kind string) metav1.Object {
	switch apiVersion + " " + kind {
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return &autoscalingv2.HorizontalPodAutoscaler{}
	case "batch/v1 Job":
		return &batchv1.Job{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "policy/v1 PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "v1 Namespace":
		return &corev1.Namespace{}
	case "v1 Secret":
		return &corev1.Secret{}
	case "v1 Service":
		return &corev1.Service{}
	}
	return nil
}

// build is `kustomize build`. It decodes each object strictly: an unknown or repeated field fails.
func build(t *testing.T, dir string) []metav1.Object {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		dir)
	require.NoError(t, err)
	var all []metav1.Object
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		object := typed(r.GetApiVersion(), r.GetKind())
		require.NotNil(t, object, "%s %s: no such kind is expected", r.GetApiVersion(), r.GetKind())
		require.NoError(t, yaml.UnmarshalStrict(text, object), "%s", text)
		all = append(all, object)
	}
	return all
}

// of finds the objects of a type.
func of[T metav1.Object](all []metav1.Object) []T {
	var found []T
	for _, o := range all {
		if one, ok := o.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

const (
	base    = "../../deploy/k8s/base"
	example = "../../deploy/k8s/overlays/example"
)

// TestManifests_AreAcceptedByKubernetes decodes each manifest into Kubernetes' own type, and checks
// its namespace.
func TestManifests_AreAcceptedByKubernetes(t *testing.T) {
	for _, dir := range []string{base, example} {
		for _, o := range build(t, dir) {
			if _, is := o.(*corev1.Namespace); !is {
				require.Equal(t, "seckill", o.GetNamespace(), o.GetName())
			}
		}
	}
}

// pods returns the templates of all pods, by their object's name.
func pods(all []metav1.Object) map[string]corev1.PodTemplateSpec {
	found := map[string]corev1.PodTemplateSpec{}
	for _, d := range of[*appsv1.Deployment](all) {
		found[d.Name] = d.Spec.Template
	}
	for _, j := range of[*batchv1.Job](all) {
		found[j.Name] = j.Spec.Template
	}
	return found
}

// TestPods_HaveLeastPrivilege checks that pods run without root and capabilities, on a
// read-only file system, with limited memory.
func TestPods_HaveLeastPrivilege(t *testing.T) {
	all := pods(build(t, example))
	require.Len(t, all, 3)
	for name, pod := range all {
		require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot, name)
		require.False(t, *pod.Spec.AutomountServiceAccountToken, name)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault,
			pod.Spec.SecurityContext.SeccompProfile.Type, name)
		for _, c := range pod.Spec.Containers {
			require.Equal(t, "registry.example.com/seckill:v1.0.0", c.Image, name)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
			require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
			require.False(t, c.Resources.Limits.Memory().IsZero(), name)
			require.False(t, c.Resources.Requests.Cpu().IsZero(), name)
		}
	}
}

// TestProbes_UseExistingPorts checks that each probe uses a port that its container declares.
func TestProbes_UseExistingPorts(t *testing.T) {
	for _, d := range of[*appsv1.Deployment](build(t, base)) {
		c := d.Spec.Template.Spec.Containers[0]
		for path, probe := range map[string]*corev1.Probe{
			"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe,
		} {
			require.Equal(t, path, probe.HTTPGet.Path, d.Name)
			require.True(t, slices.ContainsFunc(c.Ports,
				func(p corev1.ContainerPort) bool {
					return p.Name == probe.HTTPGet.Port.StrVal
				}), d.Name)
		}
		require.NotNil(t, c.StartupProbe, d.Name)
	}
}

// TestMemoryLimits_LeaveAFifth checks that the programs' own limit is at most four fifths of their
// container's. The kernel counts what Go does not, such as the buffers of connections.
func TestMemoryLimits_LeaveAFifth(t *testing.T) {
	for _, d := range of[*appsv1.Deployment](build(t, base)) {
		c := d.Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Env,
			func(e corev1.EnvVar) bool { return e.Name == "SECKILL_MEMORY_LIMIT" })
		require.GreaterOrEqual(t, i, 0, d.Name)
		limit, err := strconv.ParseInt(c.Env[i].Value, 10, 64)
		require.NoError(t, err, d.Name)
		require.LessOrEqual(t, limit<<20, c.Resources.Limits.Memory().Value()*4/5, d.Name)
	}
}

// TestReferences_Exist checks that each budget, autoscaler, service and policy refers to an
// existing workload.
func TestReferences_Exist(t *testing.T) {
	all := build(t, base)
	templates := pods(all)
	matches := func(s *metav1.LabelSelector, name string) bool {
		selector, err := metav1.LabelSelectorAsSelector(s)
		require.NoError(t, err)
		return selector.Matches(labels.Set(templates[name].Labels))
	}
	for _, b := range of[*policyv1.PodDisruptionBudget](all) {
		require.True(t, matches(b.Spec.Selector, b.Name), b.Name)
	}
	require.Len(t, of[*policyv1.PodDisruptionBudget](all), 2)
	for _, s := range of[*corev1.Service](all) {
		require.True(t, matches(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, s.Name),
			s.Name)
	}
	for _, p := range of[*networkingv1.NetworkPolicy](all) {
		chosen := 0
		for name := range templates {
			if matches(&p.Spec.PodSelector, name) {
				chosen++
			}
		}
		require.Positive(t, chosen, p.Name)
	}
	for _, h := range of[*autoscalingv2.HorizontalPodAutoscaler](all) {
		require.Contains(t, templates, h.Spec.ScaleTargetRef.Name)
	}
}

// TestConsumers_ScaleByBacklog checks that the consumers scale by processor use and by the
// backlog's age. Their number is at most the number of shards.
func TestConsumers_ScaleByBacklog(t *testing.T) {
	all := build(t, base)
	var shards string
	for _, c := range of[*corev1.ConfigMap](all) {
		shards = c.Data["SECKILL_ORDER_SHARDS"]
	}
	scalers := of[*autoscalingv2.HorizontalPodAutoscaler](all)
	i := slices.IndexFunc(scalers,
		func(h *autoscalingv2.HorizontalPodAutoscaler) bool { return h.Name == "order-consumer" })
	require.GreaterOrEqual(t, i, 0)
	spec := scalers[i].Spec
	require.Equal(t, shards, strconv.Itoa(int(spec.MaxReplicas)))
	require.Equal(t, corev1.ResourceCPU, spec.Metrics[0].Resource.Name)
	require.Equal(t, "seckill_pending_oldest_seconds", spec.Metrics[1].External.Metric.Name)
}
