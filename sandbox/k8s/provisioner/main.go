// provisioner serves the StorageClass of a sandbox with disks that belong to one
// node: for each claim a directory and a `local` volume pinned to the node that
// the scheduler selected, both removed with the claim.
//
//	provisioner KUBECONFIG STATE
//
// A node sees STATE/<node>/lib as its /var/lib.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// name is what the StorageClass calls us, in addons.yaml.
	name = "switchover.dev/sandbox"

	// Annotations of the volume provisioning protocol between scheduler,
	// persistent volume controller and provisioner.
	selectedNode     = "volume.kubernetes.io/selected-node"
	provisionerOf    = "volume.kubernetes.io/storage-provisioner"
	provisionedBy    = "pv.kubernetes.io/provisioned-by"
	volumesOnTheNode = "/var/lib/volumes"
)

type provisioner struct {
	client  kubernetes.Interface
	state   string
	claims  cache.Indexer
	volumes cache.Indexer
}

func main() {
	if len(os.Args) != 3 {
		klog.Fatal("usage: provisioner KUBECONFIG STATE")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		klog.Fatalf("provisioner: %v", err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	p := &provisioner{client, os.Args[2], claims.GetIndexer(), volumes.GetIndexer()}

	ctx := context.Background()
	claimQueue, volumeQueue := queueOf(claims), queueOf(volumes)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go work(claimQueue, func(key string) error { return p.provision(ctx, key) })
	work(volumeQueue, func(key string) error { return p.reclaim(ctx, key) })
}

type queue = workqueue.TypedRateLimitingInterface[string]

func queueOf(informer cache.SharedIndexInformer) queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 10*time.Second)
	pending := workqueue.NewTypedRateLimitingQueue(limiter)
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			pending.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
	})
	if err != nil {
		klog.Fatalf("provisioner: %v", err)
	}
	return pending
}

func work(pending queue, handle func(key string) error) {
	for {
		key, _ := pending.Get()
		if err := handle(key); err != nil {
			klog.Errorf("%s: %v; tried again", key, err)
			pending.AddRateLimited(key)
		} else {
			pending.Forget(key)
		}
		pending.Done(key)
	}
}

// provision makes the directory and the volume of a claim once its node is known.
func (p *provisioner) provision(ctx context.Context, key string) error {
	object, exists, err := p.claims.GetByKey(key)
	if err != nil || !exists {
		return err
	}
	claim := object.(*corev1.PersistentVolumeClaim)
	node := claim.Annotations[selectedNode]
	if claim.Annotations[provisionerOf] != name || node == "" || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	volume := volumeFor(claim, node)
	if _, exists, _ := p.volumes.GetByKey(volume.Name); exists {
		return nil
	}
	directory := p.directory(node, volume.Name)
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(directory, 0o777); err != nil { // past the umask: any uid may own a claim
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// reclaim removes a volume whose claim is gone, first the data and then the object.
func (p *provisioner) reclaim(ctx context.Context, key string) error {
	object, exists, err := p.volumes.GetByKey(key)
	if err != nil || !exists {
		return err
	}
	volume := object.(*corev1.PersistentVolume)
	if volume.Annotations[provisionedBy] != name || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.DeletionTimestamp != nil {
		return nil
	}
	if err := os.RemoveAll(p.directory(volume.Annotations[selectedNode], volume.Name)); err != nil {
		return err
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *provisioner) directory(node, volume string) string {
	return filepath.Join(p.state, node, "lib", "volumes", volume)
}

func volumeFor(claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolume {
	volume := fmt.Sprintf("pvc-%s", claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        volume,
			Annotations: map[string]string{provisionedBy: name, selectedNode: node},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              *claim.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(volumesOnTheNode, volume)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
					}},
				}},
			}},
		},
	}
}
