//! The subcommand `lockstep-lab lab opengl`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueHint};
use lockstep::OutputOptions;
use lockstep::engine::Engine;
use lockstep::hazmat::Key;
use lockstep::hazmat::backend::Device;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey, Direction};
use lockstep::hazmat::work::Pass;
use lockstep_cli::program::{
    Error, GuardedFile, Note, OpenSsl, Result, check_memory, failed, parse_size, print, print_json, today,
};
use lockstep_opengl::{OpenGlBackend, OpenGlDevice};
use lockstep_papers::opengl::{self, Conditions, EDGE, Report, paper};

use super::cuda;

/// AES Encryption and Decryption on the GPU (Yamanouchi, GPU Gems 3, chapter 36, 2007), by OpenGL
///
/// Measures the chapter's vertex program and fragment program, and Lockstep's kernel, by batch size as in Figure 36-9, and
/// by mode; for comparison, `openssl speed`, and the chapter's algorithm in CUDA if there is a device.
#[derive(Args)]
#[command(group = ArgGroup::new("output").args(["plot", "pictures"]))]
pub(super) struct OpenGl {
    /// Measure this device, such as `opengl:software` [default: the first GPU]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Measure this CUDA device as well, such as `cuda:emu` [default: the first GPU, if there is one]
    #[arg(long, value_name = "NAME")]
    cuda: Option<String>,

    /// Size of the plaintext [default: 128M; for a software device 4M, for the CUDA emulator 64K]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    total: Option<u64>,

    /// Do not run `openssl speed`
    #[arg(long)]
    no_openssl: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Also write the plot to this file, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,

    /// Measure nothing; encrypt a picture with letters as in Figures 36-11 and 36-13, and write plain.png, ecb.png and
    /// cbc.png to this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with_all = ["total", "no_openssl", "json", "plot", "cuda"])]
    pictures: Option<PathBuf>,

    /// Replace files that exist
    #[arg(long, requires = "output")]
    force: bool,
}

/// Limits of the option `--total`, in bytes.
const MIN_SIZE: u64 = 4096;
const MAX_SIZE: u64 = 1 << 30;
/// Sizes of the plaintext for devices that compute in software. The chapter's size would take minutes.
const SOFTWARE_TOTAL: u64 = 4 << 20;
const EMULATOR_TOTAL: u64 = 64 << 10;

pub(super) fn run(args: &OpenGl) -> Result<()> {
    let device = device(args.device.as_deref())?;
    if let Some(folder) = &args.pictures {
        return write_pictures(&device, folder, args.force);
    }
    let mut conditions = Conditions::of_the_chapter();
    let cuda = match &args.cuda {
        Some(name) => Some(cuda::device(Some(name))?),
        None => cuda::device(None).ok(),
    };
    let total = args.total.unwrap_or(match &cuda {
        Some(cuda) if cuda.properties().simulated => EMULATOR_TOTAL,
        _ if device.properties().by_name_only => SOFTWARE_TOTAL,
        _ => conditions.total as u64,
    });
    let fits = usize::try_from(total).ok().filter(|_| (MIN_SIZE..=MAX_SIZE).contains(&total));
    conditions.total = fits.ok_or_else(|| failed("--total: give a size from 4K to 1G"))?;
    check_memory(4 * total, "to measure a plaintext of this size; --total gives a smaller one")?;
    // The output file is created before the measurement, which takes minutes, so that an error appears at once.
    let options = OutputOptions { force: args.force, ..Default::default() };
    let mut file = args.plot.as_deref().map(|path| GuardedFile::create(path, options)).transpose()?;
    let openssl = if args.no_openssl { None } else { OpenSsl::find(Path::new("openssl")) };
    let mut devices: Vec<&dyn Device> = vec![&device];
    devices.extend(cuda.as_ref().map(|cuda| cuda as &dyn Device));
    let processor = Engine::builder().device("cpu").build()?;
    let note = Note::new();
    let measured = opengl::measure(
        &devices,
        conditions,
        |pass, key, iv, data| {
            let (cipher, direction) = match pass {
                Pass::EcbEncrypt => (Cipher::Ecb, Direction::Encrypt),
                Pass::EcbDecrypt => (Cipher::Ecb, Direction::Decrypt),
                Pass::CbcDecrypt => (Cipher::Cbc, Direction::Decrypt),
                _ => (Cipher::Ctr, Direction::Encrypt),
            };
            crypt(&processor, cipher, direction, key, iv, data)
        },
        |batch| openssl.as_ref()?.speed("aes-128-ecb", false, batch).map(|rate| rate / 1e6),
        |step| note.show(&step),
    )
    .map_err(|error| failed(error.to_string()))?;
    drop(note);
    let report = Report { measured, date: today() };
    // The report is printed before the plot is written, so that a failure of the write does not lose the measurements.
    if args.json { print_json(&report.json()) } else { print(&report.text()) }?;
    if let (Some(mut file), Some(path)) = (file.take(), &args.plot) {
        file.file().write_all(report.plot().svg().as_bytes()).map_err(Error::io("write", path))?;
        file.commit()?;
    }
    Ok(())
}

fn crypt(
    engine: &Engine,
    cipher: Cipher,
    direction: Direction,
    key: &Key,
    iv: &mut [u8; 16],
    data: &mut [u8],
) -> lockstep::hazmat::Result<()> {
    cipher.one(engine.planner(), direction, &CipherKey::new(cipher, key.bytes())?, iv, Data::in_place(data))
}

/// The OpenGL device of this name, or the first GPU.
pub(super) fn device(name: Option<&str>) -> Result<OpenGlDevice> {
    let (devices, missing) = OpenGlBackend.find();
    let known: Vec<String> = devices.iter().map(|device| device.id().to_string()).collect();
    let wanted = |device: &OpenGlDevice| match name {
        Some(name) => device.id().to_string() == name,
        None => !device.properties().by_name_only,
    };
    devices.into_iter().find(wanted).ok_or_else(|| match (name, missing) {
        (Some(name), _) if !known.is_empty() => {
            failed(format!("no device `{name}`: there are {}", known.join(", ")))
        }
        (_, Some(missing)) if known.is_empty() => failed(missing.to_string()),
        _ => failed("there is no GPU with OpenGL; use a software device: --device opengl:software"),
    })
}

fn write_pictures(device: &dyn Device, folder: &Path, force: bool) -> Result<()> {
    let processor = Engine::builder().device("cpu").build()?;
    let cbc = |key: &Key, iv: &[u8; 16], data: &mut [u8]| {
        crypt(&processor, Cipher::Cbc, Direction::Encrypt, key, &mut iv.clone(), data)
    };
    // If the device cannot run the chapter's fragment program, the default kernel is used.
    let kernel =
        device.kernels().iter().find(|info| info.name == paper::KERNELS[1] && info.missing.is_none());
    let kernel = kernel.unwrap_or(&device.kernels()[0]).name;
    let pictures = opengl::pictures(device, kernel, cbc).map_err(|error| failed(error.to_string()))?;
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let files = [("plain.png", pictures.plain), ("ecb.png", pictures.ecb), ("cbc.png", pictures.cbc)];
    // All files are created before any of them appears.
    let mut outputs = Vec::new();
    for (name, pixels) in files {
        let path = folder.join(name);
        let options = OutputOptions { force, ..Default::default() };
        let mut file = GuardedFile::create(&path, options)?;
        file.file().write_all(&png(&pixels)?).map_err(Error::io("write", &path))?;
        outputs.push(file);
    }
    outputs.into_iter().try_for_each(GuardedFile::commit)?;
    print(&format!("{}: {kernel}: plain.png, ecb.png, cbc.png\n", device.id()))
}

/// Encodes a picture of RGBA pixels as PNG. Opacity is omitted, because the opacity of a ciphertext is random.
fn png(pixels: &[u8]) -> Result<Vec<u8>> {
    let colours: Vec<u8> = pixels.chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    let cannot = |error: png::EncodingError| failed(format!("cannot make a PNG: {error}"));
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, EDGE as u32, EDGE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(cannot)?;
    writer.write_image_data(&colours).map_err(cannot)?;
    writer.finish().map_err(cannot)?;
    Ok(out)
}
