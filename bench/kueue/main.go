// Command kueue times Kueue's own topology-aware placement on a cluster and requests read from a case file.
//
// It drives the public cache the way Kueue's scheduler does: nodes and pods go into the cache, a snapshot is taken, and
// each request is asked of the snapshot with the default algorithm and the default feature gates. Two times are taken
// per request: cold, the first question to a fresh snapshot, and warm, the same question again, when Kueue has the
// matching nodes and the remaining capacity of every node cached.
//
// Usage: kueue CASE.json >ANSWERS.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/resources"
)

const (
	module = "sigs.k8s.io/kueue"
	name   = "bench"
	// A slow question gets as many chances as this to meet a quiet moment, however long that takes.
	warmRuns = 50
)

// amounts are in thousandths for cpu, and in bytes or pieces for everything else.
type amounts map[corev1.ResourceName]int64

type node struct {
	Name    string   `json:"name"`
	Domains []string `json:"domains"`
	Used    amounts  `json:"used"`
}

type request struct {
	Name     string  `json:"name"`
	Pods     int32   `json:"pods"`
	Each     amounts `json:"each"`
	Level    string  `json:"level"`
	Required bool    `json:"required"`
}

type benchCase struct {
	Levels      []string  `json:"levels"`
	Allocatable amounts   `json:"allocatable"`
	Nodes       []node    `json:"nodes"`
	Requests    []request `json:"requests"`
	Seconds     float64   `json:"seconds"`
	ColdRuns    int       `json:"cold_runs"`
}

type answer struct {
	Name   string           `json:"name"`
	WarmUs float64          `json:"warm_us"`
	ColdUs float64          `json:"cold_us"`
	Placed bool             `json:"placed"`
	Reason string           `json:"reason"`
	Nodes  map[string]int32 `json:"nodes"`
}

type report struct {
	Version    string   `json:"version"`
	Go         string   `json:"go"`
	SnapshotUs float64  `json:"snapshot_us"`
	HeapBytes  uint64   `json:"heap_bytes"`
	Answers    []answer `json:"answers"`
}

// noObjects answers the cache's question for existing queues and workloads: there are none.
type noObjects struct{ client.Client }

func (noObjects) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kueue CASE.json")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var asked benchCase
	if err := json.Unmarshal(text, &asked); err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	text = nil
	before := heap()
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	cache, err := fill(ctx, &asked)
	if err != nil {
		return err
	}
	out := report{Version: version(), Go: runtime.Version(), SnapshotUs: math.Inf(1)}
	for range max(1, asked.ColdRuns) {
		started := time.Now()
		if _, err := flavor(ctx, cache); err != nil {
			return err
		}
		out.SnapshotUs = min(out.SnapshotUs, microseconds(started))
	}
	for _, one := range asked.Requests {
		found, err := ask(ctx, cache, &asked, one)
		if err != nil {
			return err
		}
		out.Answers = append(out.Answers, found)
	}
	// What stays in memory: the cache, one snapshot, and what the snapshot itself caches for one request.
	snapshot, err := flavor(ctx, cache)
	if err != nil {
		return err
	}
	question, workload := translate(asked.Requests[0])
	snapshot.FindTopologyAssignmentsForFlavor(ctx, question, scheduler.WithWorkload(workload))
	out.HeapBytes = heap() - before
	runtime.KeepAlive(snapshot)
	runtime.KeepAlive(cache)
	return json.NewEncoder(os.Stdout).Encode(out)
}

// ask times one request and returns what Kueue answers.
func ask(ctx context.Context, cache *scheduler.Cache, asked *benchCase, one request) (answer, error) {
	question, workload := translate(one)
	cold, warm := math.Inf(1), math.Inf(1)
	var snapshot *scheduler.TASFlavorSnapshot
	var result scheduler.TASAssignmentsResult
	for range max(1, asked.ColdRuns) {
		var err error
		if snapshot, err = flavor(ctx, cache); err != nil {
			return answer{}, err
		}
		started := time.Now()
		result = snapshot.FindTopologyAssignmentsForFlavor(ctx, question, scheduler.WithWorkload(workload))
		cold = min(cold, microseconds(started))
	}
	runtime.GC()
	for begun, runs := time.Now(), 0; runs < warmRuns || time.Since(begun).Seconds() < asked.Seconds; runs++ {
		started := time.Now()
		result = snapshot.FindTopologyAssignmentsForFlavor(ctx, question, scheduler.WithWorkload(workload))
		warm = min(warm, microseconds(started))
	}
	found := answer{Name: one.Name, WarmUs: warm, ColdUs: cold, Nodes: map[string]int32{}}
	if failure := result.Failure(); failure != nil {
		found.Reason = failure.Reason
		return found, nil
	}
	assignment := result[name].TopologyAssignment
	if assignment == nil {
		return found, fmt.Errorf("%s: neither an assignment nor a reason", one.Name)
	}
	found.Placed = true
	for _, domain := range assignment.Domains {
		found.Nodes[domain.Values[len(domain.Values)-1]] += domain.Count
	}
	return found, nil
}

// fill builds a cache that holds the cluster: one topology, one flavor, one queue that uses it, the nodes and the pods.
func fill(ctx context.Context, asked *benchCase) (*scheduler.Cache, error) {
	log := logr.Discard()
	cache := scheduler.New(noObjects{})
	topology := &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, label := range asked.Levels {
		topology.Spec.Levels = append(topology.Spec.Levels, kueue.TopologyLevel{NodeLabel: label})
	}
	cache.AddOrUpdateTopology(log, topology)
	reference := kueue.TopologyReference(name)
	cache.AddOrUpdateResourceFlavor(log, &kueue.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kueue.ResourceFlavorSpec{TopologyName: &reference},
	})
	quotas := kueue.FlavorQuotas{Name: name}
	group := kueue.ResourceGroup{}
	for _, covered := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"} {
		group.CoveredResources = append(group.CoveredResources, covered)
		quotas.Resources = append(quotas.Resources, kueue.ResourceQuota{
			Name: covered, NominalQuota: *resource.NewQuantity(math.MaxInt32, resource.DecimalSI),
		})
	}
	group.Flavors = []kueue.FlavorQuotas{quotas}
	if err := cache.AddClusterQueue(ctx, &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups:    []kueue.ResourceGroup{group},
		},
	}); err != nil {
		return nil, err
	}
	for _, one := range asked.Nodes {
		labels := map[string]string{}
		for level, value := range append(append([]string{}, one.Domains...), one.Name) {
			labels[asked.Levels[level]] = value
		}
		cache.TASCache().SyncNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: one.Name, Labels: labels},
			Status: corev1.NodeStatus{
				Allocatable: quantities(asked.Allocatable),
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
		if len(one.Used) > 0 {
			cache.TASCache().Update(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: one.Name + "-pod", Namespace: name},
				Spec:       corev1.PodSpec{NodeName: one.Name, Containers: containers(one.Used)},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			}, log)
		}
	}
	return cache, nil
}

// flavor takes a snapshot and returns the part of it that places pods.
func flavor(ctx context.Context, cache *scheduler.Cache) (*scheduler.TASFlavorSnapshot, error) {
	snapshot, err := cache.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	queue := snapshot.ClusterQueue(name)
	if queue == nil || queue.TASFlavors[name] == nil {
		return nil, fmt.Errorf("the queue is not in the snapshot: %v", snapshot.InactiveClusterQueueSets)
	}
	return queue.TASFlavors[name], nil
}

// translate says a request in Kueue's terms. The workload's UID is the key under which matching nodes are cached.
func translate(one request) (scheduler.FlavorTASRequests, *kueue.Workload) {
	topology := &kueue.PodSetTopologyRequest{}
	if one.Required {
		topology.Required = &one.Level
	} else {
		topology.Preferred = &one.Level
	}
	podSet := &kueue.PodSet{
		Name:            name,
		Count:           one.Pods,
		TopologyRequest: topology,
		Template:        corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers(one.Each)}},
	}
	workload := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: one.Name, UID: types.UID(one.Name)}}
	return scheduler.FlavorTASRequests{{
		PodSet:            podSet,
		SinglePodRequests: resources.NewRequestsFromPodSpec(&podSet.Template.Spec),
		Count:             one.Pods,
		Flavor:            name,
	}}, workload
}

func containers(each amounts) []corev1.Container {
	return []corev1.Container{{Name: name, Resources: corev1.ResourceRequirements{Requests: quantities(each)}}}
}

func quantities(all amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	for resourceName, amount := range all {
		switch resourceName {
		case corev1.ResourceCPU:
			list[resourceName] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
		default:
			list[resourceName] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
	}
	return list
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func microseconds(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e3 }

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version
			}
		}
	}
	return "unknown"
}
