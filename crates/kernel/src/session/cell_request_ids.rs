//! [`CellRequestIds`]: the requests under which the cells of a job ran.

/// Generation of the kernel and number of the request of each cell that ran. A job may have very many cells, whose
/// requests usually have consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct CellRequestIds(Vec<ConsecutiveCells>);

/// Consecutive cells with consecutive request numbers.
#[derive(Debug)]
struct ConsecutiveCells {
    first_cell: usize,
    generation: u32,
    first_request: u64,
    count: usize,
}

impl CellRequestIds {
    /// Adds a cell that ran.
    pub(super) fn push(&mut self, cell: usize, (generation, request): (u32, u64)) {
        if let Some(last) = self.0.last_mut()
            && last.generation == generation
            && last.first_cell + last.count == cell
            && last.first_request + last.count as u64 == request
        {
            last.count += 1;
            return;
        }
        self.0.push(ConsecutiveCells {
            first_cell: cell,
            generation,
            first_request: request,
            count: 1,
        });
    }

    /// The first cell that ran under a request.
    pub(super) fn find_cell(&self, (generation, request): (u32, u64)) -> Option<usize> {
        let in_generation = self.0.iter().filter(|cells| cells.generation == generation);
        in_generation.into_iter().find_map(|cells| {
            let offset = request.checked_sub(cells.first_request)?;
            let offset = usize::try_from(offset).ok()?;
            (offset < cells.count).then_some(cells.first_cell + offset)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_request() {
        let mut ids = CellRequestIds::default();
        let ran = [
            (0, (1, 5)),
            (1, (1, 6)),
            (2, (1, 8)),
            (2, (2, 1)),
            (3, (2, 2)),
            (4, (2, 3)),
        ];
        for (cell, request_id) in ran {
            ids.push(cell, request_id);
        }
        for (cell, request_id) in ran {
            assert_eq!(ids.find_cell(request_id), Some(cell), "{request_id:?}");
        }
        for missing in [(1, 4), (1, 7), (1, 9), (2, 0), (2, 4), (3, 1)] {
            assert_eq!(ids.find_cell(missing), None, "{missing:?}");
        }
        assert_eq!(ids.0.len(), 3);
    }
}
