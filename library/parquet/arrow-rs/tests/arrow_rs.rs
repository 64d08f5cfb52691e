//! `lockstep-parquet` reads what arrow-rs encrypts, and arrow-rs reads what `lockstep-parquet` encrypts. arrow-rs has
//! neither AES_GCM_CTR_V1 nor keys of 192 bits.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use bytes::Bytes;
use lockstep::Engine;
use lockstep_parquet::{ColumnKey, Keys, PlainView, Policy, ReadOptions, encrypt};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

const ROWS: usize = 600;
const PREFIX: &[u8] = b"a file";

fn table() -> RecordBatch {
    let ids = Int64Array::from_iter((0..ROWS as i64).map(|i| (i % 7 != 0).then_some(i)));
    let names = StringArray::from_iter_values((0..ROWS).map(|i| format!("name {}", i % 13)));
    let values = Float64Array::from_iter_values((0..ROWS).map(|i| i as f64 / 3.0));
    let lists =
        (0..ROWS).map(|i| (i % 5 != 0).then(|| (0..i % 4).map(|j| Some(j as i32)).collect::<Vec<_>>()));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(ids)),
        ("name", Arc::new(names)),
        ("value", Arc::new(values)),
        ("list", Arc::new(lists)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The parameters that a test varies.
#[derive(Debug, Clone, Copy)]
struct Setting {
    footer: &'static [u8],
    /// The key of the column `name`, if this column has a separate key.
    column: Option<&'static [u8]>,
    has_plain_footer: bool,
    has_prefix: bool,
    stores_prefix: bool,
}

fn settings() -> impl Iterator<Item = Setting> {
    let keys: [(&[u8], Option<&[u8]>); 4] =
        [(&[1; 16], None), (&[2; 32], None), (&[3; 32], Some(&[4; 16])), (&[5; 16], Some(&[6; 32]))];
    keys.into_iter().flat_map(|(footer, column)| {
        [(false, false, true), (true, false, true), (false, true, true), (true, true, false)].map(
            |(has_plain_footer, has_prefix, stores_prefix)| Setting {
                footer,
                column,
                has_plain_footer,
                has_prefix,
                stores_prefix,
            },
        )
    })
}

/// Two row groups, with statistics of pages and a Bloom filter.
fn write(batch: &RecordBatch, encryption: Option<Arc<FileEncryptionProperties>>) -> Vec<u8> {
    let mut properties = WriterProperties::builder()
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true);
    if let Some(encryption) = encryption {
        properties = properties.with_file_encryption_properties(encryption);
    }
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch.slice(0, ROWS / 2)).unwrap();
    writer.flush().unwrap();
    writer.write(&batch.slice(ROWS / 2, ROWS - ROWS / 2)).unwrap();
    writer.close().unwrap();
    file
}

fn read(file: Vec<u8>, options: ArrowReaderOptions) -> parquet::errors::Result<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(file), options)?;
    let mut batches = builder.with_batch_size(ROWS).build()?;
    let batch = batches.next().expect("a batch")?;
    assert!(batches.next().is_none());
    Ok(batch)
}

#[test]
fn files_of_arrow_rs_are_read() {
    let (engine, batch) = (Engine::new().unwrap(), table());
    for setting in settings() {
        let mut properties = FileEncryptionProperties::builder(setting.footer.to_vec())
            .with_plaintext_footer(setting.has_plain_footer);
        let mut keys = Keys::new().footer(setting.footer);
        if let Some(key) = setting.column {
            properties = properties.with_column_key("name", key.to_vec());
            keys = keys.column("name", key);
        }
        if setting.has_prefix {
            properties =
                properties.with_aad_prefix(PREFIX.to_vec()).with_aad_prefix_storage(setting.stores_prefix);
        }
        let file = write(&batch, Some(properties.build().unwrap()));
        let options =
            ReadOptions { aad_prefix: setting.has_prefix.then_some(PREFIX), ..ReadOptions::default() };
        let view = PlainView::open(&engine, &file, &keys, options).unwrap();
        let mut plain = Vec::new();
        view.copy_to(&mut plain).unwrap();
        let indexes = ArrowReaderOptions::new()
            .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required);
        assert_eq!(read(plain, indexes).unwrap(), batch, "{setting:?}");
        let wrong = Keys::new().footer(&[9; 16]);
        assert!(PlainView::open(&engine, &file, &wrong, options).is_err(), "{setting:?}");
    }
}

#[test]
fn arrow_rs_reads_our_files() {
    let (engine, batch) = (Engine::new().unwrap(), table());
    let plain = write(&batch, None);
    for setting in settings() {
        let column = setting.column.map(|key| ColumnKey {
            path: "name".into(),
            key: key.to_vec().into(),
            key_metadata: None,
        });
        let policy = Policy {
            columns: column.into_iter().collect(),
            plaintext_footer: setting.has_plain_footer,
            aad_prefix: setting.has_prefix.then(|| PREFIX.to_vec()),
            stores_aad_prefix: setting.stores_prefix,
            ..Policy::uniform(setting.footer)
        };
        let mut file = Vec::new();
        encrypt(&engine, &plain, &mut file, &policy).unwrap();
        let options = |footer: &[u8]| {
            let mut properties = FileDecryptionProperties::builder(footer.to_vec());
            if let Some(key) = setting.column {
                properties = properties.with_column_key("name", key.to_vec());
            }
            if setting.has_prefix {
                properties = properties.with_aad_prefix(PREFIX.to_vec());
            }
            ArrowReaderOptions::new()
                .with_file_decryption_properties(properties.build().unwrap())
                .with_page_index_policy(parquet::file::metadata::PageIndexPolicy::Required)
        };
        assert_eq!(read(file.clone(), options(setting.footer)).unwrap(), batch, "{setting:?}");
        // The control: reading with another footer key fails.
        assert!(read(file, options(&[9; 16])).is_err(), "{setting:?}");
    }
}
