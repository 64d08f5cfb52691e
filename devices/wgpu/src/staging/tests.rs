use super::*;
use crate::software;

/// A staging buffer is also wiped if it was filled but its work was not submitted.
#[test]
fn an_unsubmitted_staging_buffer_is_wiped() {
    let Some(device) = software::device() else { return };
    let gpu = device.gpu().unwrap();
    let mut staging = Staging::new();
    let len = 40_000;
    staging.reserve(&gpu, &Room { parameters: len, work_in: 0, extra: 0, work: 0, download: 0 }).unwrap();
    staging.fill(&gpu, len, |view| view.slice(..).fill(7)).unwrap();
    let upload = staging.upload.buffer.clone().unwrap();
    gpu.discard(staging);
    // The upload buffer can be mapped for writing only. The device therefore copies it to another buffer, which the test reads.
    let (size, usage) = (len as u64, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
    let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    upload.unmap();
    let (seen, submission) = gpu
        .call(|device, queue| {
            let seen = device.create_buffer(&descriptor);
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&upload, 0, &seen, 0, size);
            (seen, queue.submit([encoder.finish()]))
        })
        .unwrap();
    let mapping = gpu.call(|_, _| Mapping::begin(&seen, wgpu::MapMode::Read, len)).unwrap();
    gpu.wait(&submission).unwrap();
    mapping.wait(&gpu).unwrap();
    assert!(seen.get_mapped_range(..size).unwrap().iter().all(|&byte| byte == 0));
}
